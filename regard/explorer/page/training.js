export const training = { title: "training", available: () => false, build() {}, draw() {} };
