// Builds the bundle: `node build.mjs [FOLDER]`, by default ../bundle, which is committed.
import { build } from "esbuild";

const folder = process.argv[2] ?? "../bundle";
await build({
  entryPoints: { app: "src/main.tsx" },
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
});
