declare module "virtual:scenarios" {
  const examples: readonly import("./model/examples").Example[];
  export default examples;
}
