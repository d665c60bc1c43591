/** The page that a server serves. */

import { live } from "./live.js";
import { open } from "./app.js";

open(document.getElementById("regard"), live());
