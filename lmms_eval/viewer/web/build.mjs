// Builds the bundle: `node build.mjs [FOLDER]`, by default ../bundle, which is committed.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";

import { build } from "esbuild";

const folder = process.argv[2] ?? "../bundle";
const { metafile } = await build({
  entryPoints: { app: "src/main.tsx", ui: "src/ui/main.tsx" },
  outdir: folder,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome100", "firefox100", "safari15.4"],
  charset: "utf8",
  legalComments: "eof",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
  metafile: true,
});

const packages = new Set(Object.keys(metafile.inputs).flatMap((file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []));
const licences = [...packages].sort().map((name) => {
  const files = readdirSync(`node_modules/${name}`);
  const licence = files.find((file) => /^licen[cs]e/i.test(file));
  const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  if (!licence) throw new Error(`${name} comes without a licence`);
  return `${name} ${version}\n\n${readFileSync(`node_modules/${name}/${licence}`, "utf8").trim()}\n`;
});
writeFileSync(`${folder}/LICENSES.txt`, licences.join(`\n${"-".repeat(72)}\n\n`));
