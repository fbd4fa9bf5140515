import { readFileSync } from 'node:fs'
import { defineConfig, type Options } from 'tsup'

/** What `src/container.ts` takes into its file, by where the licences lie. */
const contained = {
  tsyringe: 'tsyringe/LICENSE',
  'reflect-metadata': 'reflect-metadata/LICENSE',
  tslib: 'tsyringe/node_modules/tslib/LICENSE.txt',
}
const licences = Object.entries(contained).map(
  ([name, path]) => `${name}:\n\n${readFileSync(`node_modules/${path}`, 'utf8').trim()}`,
)

const mediabunny = (JSON.parse(readFileSync('node_modules/mediabunny/package.json', 'utf8')) as { version: string })
  .version
const mediabunnySource = `https://github.com/Vanilagy/mediabunny/tree/v${mediabunny}`

/** Scripts of `/console` that share little with the rest, each loaded when it is used. */
const apart = {
  'compressed-source': 'src/console/sources/compressed-source.ts',
  'docs-search': 'src/console/docs/docs-search.ts',
  download: 'src/client/download.ts',
  'find-rhythm': 'src/console/mixer/find-rhythm.ts',
  'media-keys': 'src/console/mixer/media-keys.ts',
  'offline-worker': 'src/console/song/offline-worker.ts',
  'on-device': 'src/console/uploads/on-device.ts',
  'qr-code': 'src/console/keys/qr-code.ts',
  'resumable-upload': 'src/client/resumable-upload.ts',
  spectrum: 'src/console/pictures/spectrum.ts',
  stretcher: 'src/console/player/stretcher.ts',
  upload: 'src/client/upload.ts',
  wait: 'src/client/wait.ts',
}

/** The pages `/console`, `/operator` and `/docs`, which the HTTP side serves. */
const pages: Options = {
  outDir: 'dist/console',
  tsconfig: 'tsconfig.console.json',
  platform: 'browser',
  format: 'esm',
  target: 'es2022',
  // After esbuild: a gzipped script is 3 % smaller than by esbuild alone.
  minify: 'terser',
  terserOptions: { compress: { ecma: 2020, lhs_constants: false, inline: 1 } },
  noExternal: [/./],
  silent: true,
  esbuildOptions(options) {
    options.minify = true
    // Calls of `h()` are smaller than those of `jsx()`, which the type check's options name.
    options.tsconfig = undefined
    options.tsconfigRaw = '{}'
    options.jsx = 'transform'
    options.jsxFactory = 'h'
    options.jsxFragment = 'Fragment'
    options.inject = ['src/console/jsx.ts']
    // Pages send files, and those by XMLHttpRequest. The other one uses the kernels: tsup.browser.config.ts.
    const later = ['*/streamed-body.js', '*/export-mix.js']
    options.external = [...later, ...Object.keys(apart).map((name) => `*/${name}.js`)]
  },
}

export default defineConfig([
  // What a person sees first, and parts that are loaded when they are used.
  { ...pages, entry: { app: 'src/console/app.tsx' }, splitting: true },
  // Node.js's files one by one: what the tests and benchmarks run, and what `scripts/bundle.mjs` makes dist of.
  {
    outDir: 'build',
    entry: [
      'src/**/*.ts',
      '!src/container.ts',
      '!src/core/models/session/onnxruntime-web.ts',
      '!src/core/media/decode/mpeg/mpeg-ts-packets.ts',
      '!src/browser/**',
      '!src/console/**',
      '!src/**/kernels/assembly/**',
      '!src/**/*.d.ts',
    ],
    bundle: false,
    format: 'esm',
    target: 'node20',
    // What `scripts/build-kernels.mjs` compiles stays as long as it is of the present sources.
    clean: [
      '**/*',
      '!container.js',
      '!core/models/session/onnxruntime-web.js',
      '!core/media/decode/mpeg/mpeg-ts-packets.js',
      '!**/compiled-kernels.js',
    ],
    silent: true,
  },
  {
    outDir: 'build',
    entry: ['src/container.ts'],
    format: 'esm',
    target: 'node20',
    noExternal: Object.keys(contained),
    footer: { js: `/*!\nThis file contains the packages below.\n\n${licences.join('\n\n')}\n*/` },
    silent: true,
  },
  {
    outDir: 'build',
    entry: { 'core/models/session/onnxruntime-web': 'src/core/models/session/onnxruntime-web.ts' },
    format: 'esm',
    platform: 'node',
    target: 'node20',
    noExternal: [/./],
    minify: true,
    footer: { js: `/*!\n${readFileSync('scripts/onnxruntime-licences.txt', 'utf8').trim()}\n*/` },
    silent: true,
  },
  {
    outDir: 'build',
    entry: { 'core/media/decode/mpeg/mpeg-ts-packets': 'src/core/media/decode/mpeg/mpeg-ts-packets.ts' },
    format: 'esm',
    target: 'node20',
    noExternal: [/./],
    minify: true,
    footer: { js: `/*!\nParts of mediabunny ${mediabunny} (MPL-2.0), whose source is at ${mediabunnySource}\n*/` },
    silent: true,
  },
  {
    ...pages,
    entry: {
      docs: 'src/console/docs/docs.ts',
      ...apart,
      operator: 'src/console/operator/app.tsx',
      'operator-style': 'src/console/operator/operator.css',
      console: 'src/console/styles/console.css',
      'later-style': 'src/console/styles/later.css',
      'docs-style': 'src/console/styles/docs.css',
    },
    publicDir: 'src/console/public',
    splitting: false,
    clean: true,
  },
])
