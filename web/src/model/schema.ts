// The JSON schema of the scenario file: which keys a table has, and what they mean.

export interface SchemaNode {
  $ref?: string;
  type?: string | string[];
  description?: string;
  properties?: Record<string, SchemaNode>;
  additionalProperties?: SchemaNode | boolean;
  required?: string[];
  items?: SchemaNode;
  anyOf?: SchemaNode[];
  oneOf?: SchemaNode[];
  allOf?: SchemaNode[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  definitions?: Record<string, SchemaNode>;
}

export class Schema {
  constructor(private readonly root: SchemaNode) {}

  /** Returns the alternatives of a node: itself, and what it refers to. */
  private alternatives(node: SchemaNode, depth = 0): SchemaNode[] {
    if (depth > 12) {
      return [];
    }
    const parts = [...(node.anyOf ?? []), ...(node.oneOf ?? []), ...(node.allOf ?? [])];
    const name = node.$ref?.split("/").at(-1);
    const target = name === undefined ? undefined : this.root.definitions?.[name];
    if (target !== undefined) {
      parts.push(target);
    }
    return [node, ...parts.flatMap((part) => this.alternatives(part, depth + 1))];
  }

  /** Returns the nodes at a path of keys. A name that the user chose matches any table. */
  at(path: readonly string[]): SchemaNode[] {
    let nodes = this.alternatives(this.root);
    for (const key of path) {
      nodes = nodes
        .flatMap((node) => {
          const own = node.properties?.[key];
          const other = typeof node.additionalProperties === "object" ? [node.additionalProperties] : [];
          return own !== undefined ? [own] : other;
        })
        .flatMap((node) => this.alternatives(node));
    }
    return nodes;
  }

  /** Returns the keys of the table at a path, with their descriptions. */
  keys(path: readonly string[]): { key: string; description: string; required: boolean }[] {
    const found = new Map<string, { key: string; description: string; required: boolean }>();
    for (const node of this.at(path)) {
      for (const [key, value] of Object.entries(node.properties ?? {})) {
        const description = this.describe(value);
        const required = node.required?.includes(key) ?? false;
        found.set(key, { key, description, required });
      }
    }
    return [...found.values()];
  }

  private describe(node: SchemaNode): string {
    return this.alternatives(node).find((one) => one.description !== undefined)?.description ?? "";
  }

  /** Returns the meaning of the key at a path. */
  description(path: readonly string[]): string {
    return this.at(path).find((node) => node.description !== undefined)?.description ?? "";
  }

  /** Returns the words that the key at a path accepts, with their meanings. */
  words(path: readonly string[]): { word: string; description: string }[] {
    const found = new Map<string, string>();
    for (const node of this.at(path)) {
      const words = node.const !== undefined ? [node.const] : (node.enum ?? []);
      for (const word of words) {
        if (typeof word === "string") {
          found.set(word, words.length === 1 ? (node.description ?? "") : "");
        }
      }
      if (node.type === "boolean") {
        found.set("true", "").set("false", "");
      }
    }
    return [...found].map(([word, description]) => ({ word, description }));
  }

  /** Returns examples of the value of the key at a path, in TOML. */
  examples(path: readonly string[]): string[] {
    const values = this.at(path).flatMap((node) => node.examples ?? []);
    return [...new Set(values.map((value) => JSON.stringify(value)))];
  }
}
