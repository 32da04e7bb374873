// Builds the page into a folder: node build.mjs <folder>
import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const folder = process.argv[2];
if (!folder) throw new Error("node build.mjs <folder>");

await mkdir(folder, { recursive: true });
await build({
  entryPoints: ["src/app.tsx", "src/app.css"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  outdir: folder,
  legalComments: "inline",
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) await copyFile(join("src", name), join(folder, name));
