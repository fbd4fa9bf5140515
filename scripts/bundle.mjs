// Bundles the files that tsup compiled to build/ one by one into those published for Node.js: a program that imports
// stemwork then reads a few files instead of hundreds. Dependencies stay outside.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, transform } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const { bin, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** Files that child processes, threads and hosts load by path; see `scriptFile`. */
const loadedByPath = [
  'cli/workflows/workflow-file',
  'core/engine/program/guard',
  'core/engine/runner/main',
  'core/media/encode/encoder-thread',
  'core/media/pictures/audio-peaks-child',
  'core/models/session/network-thread',
  'core/workflows/analysis/analyze-module',
  'core/workflows/analysis/beat-network/analyze-beats-module',
  'core/workflows/loudness/loudness-module',
  'core/workflows/notes/notes-module',
  'core/workflows/practice/mix-module',
  'core/workflows/separation/live/live-thread',
  'core/workflows/separation/stems-module',
  'core/workflows/transcode/transcode-module',
  'http/storage/resumable-upload',
]
const published = Object.values(exports).flatMap((target) => target.default ?? [])
const entryPoints = [
  ...[...published, ...Object.values(bin)]
    .map((path) => path.replace('./dist/', ''))
    .filter((path) => !path.startsWith('browser/')),
  ...loadedByPath.map((path) => `${path}.js`),
]

for (const name of readdirSync(join(root, 'dist')))
  if (name !== 'console') rmSync(join(root, 'dist', name), { recursive: true })
await build({
  // Bundles name the source file of each part, relative to this folder.
  absWorkingDir: join(root, 'build'),
  entryPoints,
  outbase: '.',
  outdir: '../dist',
  // As deep as `core/engine/package-files`, which finds the package's folder by its own depth.
  chunkNames: 'core/shared/[name]-[hash]',
  bundle: true,
  splitting: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  target: 'node20',
  logLevel: 'warning',
})

// Somebody else's code, which tsup had minified.
const shared = join(root, 'dist/core/shared')
for (const name of readdirSync(shared).filter((file) => /^(mpeg-ts-packets|onnxruntime-web)-/.test(file))) {
  const { code } = await transform(readFileSync(join(shared, name), 'utf8'), { minify: true, format: 'esm' })
  writeFileSync(join(shared, name), code)
}
