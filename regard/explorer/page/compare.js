export const compare = { title: "compare", available: () => false, build() {}, draw() {} };
