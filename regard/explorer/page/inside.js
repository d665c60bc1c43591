export const inside = { title: "inside", available: () => false, build() {}, draw() {} };
