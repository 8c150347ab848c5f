// Generates types with openapi-typescript. The arguments are the API document and the file to
// write. The tool's command line has no option for binary files and types them as strings; its
// documentation recommends this for Blob.
import { writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const [document, output] = process.argv.slice(2);
const blob = ts.factory.createTypeReferenceNode("Blob");
const types = await openapiTS(pathToFileURL(document), {
  transform: (schema) => (schema.format === "binary" ? blob : undefined),
});
await writeFile(output, astToString(types));
