// Builds the pages into a folder: node build.mjs <folder>
import { copyFile, mkdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { build } from "esbuild";

const folder = process.argv[2];
if (!folder) throw new Error("node build.mjs <folder>");

const swagger = "node_modules/swagger-ui-dist";
const copied = [
  "src/index.html",
  "src/docs.html",
  "src/icon.svg",
  `${swagger}/swagger-ui.css`,
  `${swagger}/swagger-ui-bundle.js`,
  `${swagger}/swagger-ui-bundle.js.LICENSE.txt`,
];

await mkdir(folder, { recursive: true });
await build({
  entryPoints: ["src/app.tsx", "src/app.css", "src/docs.ts"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  outdir: folder,
  legalComments: "inline",
  logLevel: "warning",
});
for (const path of copied) await copyFile(path, join(folder, basename(path)));
