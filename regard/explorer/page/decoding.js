export const decoding = { title: "decoding", available: () => false, build() {}, draw() {} };
