export const positions = { title: "positions", available: () => false, build() {}, draw() {} };
