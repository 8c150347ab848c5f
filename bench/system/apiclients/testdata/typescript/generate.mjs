// Makes types of the document in the first argument with openapi-typescript, in the file in the
// second. Its command line has no setting for files and makes them texts; this is what its
// documentation says to do for Blob.
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
