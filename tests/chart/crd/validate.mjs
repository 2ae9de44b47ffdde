// Says what is wrong with custom resources, by what their makers' types give: bounds and patterns by the validators that
// were made of them, and keys that are not known, which those let pass, by TypeScript's check of a literal.
// Usage: node validate.mjs FOLDER_WITH_NODE_MODULES < ARRAY_OF_OBJECTS_AS_JSON
// Prints an array: for each object what is wrong, empty if nothing is. An object of a kind that is not known is an error.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const packages = {
  "gateway.networking.k8s.io": "gateway-api",
  "monitoring.coreos.com": "prometheus-operator",
  "keda.sh": "keda",
};
const folder = resolve(process.argv[2]);
const modules = join(folder, "node_modules");
const ts = (await import(pathToFileURL(join(modules, "typescript", "lib", "typescript.js")))).default;

function home({ apiVersion, kind }) {
  const name = packages[apiVersion.split("/")[0]];
  if (name === undefined) throw new Error(`no schema of ${apiVersion} ${kind}`);
  return `@kubernetes-models/${name}/${apiVersion}`;
}

async function outOfBounds(object) {
  const kinds = await import(pathToFileURL(join(modules, home(object), "index.js")));
  try {
    new kinds[object.kind](object).validate();
    return [];
  } catch (error) {
    return [error.message];
  }
}

// One program for all objects: each is a file of its own, which is nowhere but in memory.
function mistyped(objects) {
  const files = new Map(objects.map((object, number) => [
    join(folder, `object${number}.ts`),
    `import type { I${object.kind} } from "${home(object)}";\n` +
      `export const object: I${object.kind} = ${JSON.stringify(object)};\n`,
  ]));
  const options = { module: ts.ModuleKind.NodeNext, noEmit: true, strict: true, skipLibCheck: true, types: [] };
  const host = ts.createCompilerHost(options);
  const { fileExists, getSourceFile, readFile } = host;
  host.fileExists = (path) => files.has(path) || fileExists(path);
  host.readFile = (path) => files.get(path) ?? readFile(path);
  host.getSourceFile = (path, target, ...rest) =>
    files.has(path) ? ts.createSourceFile(path, files.get(path), target) : getSourceFile(path, target, ...rest);
  const program = ts.createProgram([...files.keys()], options, host);
  return [...files.keys()].map((path) =>
    ts.getPreEmitDiagnostics(program, program.getSourceFile(path))
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n")));
}

const objects = JSON.parse(readFileSync(0, "utf8"));
const types = mistyped(objects);
const found = [];
for (const [number, object] of objects.entries()) found.push([...types[number], ...(await outOfBounds(object))]);
console.log(JSON.stringify(found));
