import { readFileSync } from 'node:fs'
import { defineConfig } from 'tsup'

/** What `src/container.ts` takes into its file, by where the licences lie. */
const contained = {
  tsyringe: 'tsyringe/LICENSE',
  'reflect-metadata': 'reflect-metadata/LICENSE',
  tslib: 'tsyringe/node_modules/tslib/LICENSE.txt',
}
const licences = Object.entries(contained).map(
  ([name, path]) => `${name}:\n\n${readFileSync(`node_modules/${path}`, 'utf8').trim()}`,
)

export default defineConfig([
  {
    entry: [
      'src/**/*.ts',
      '!src/container.ts',
      '!src/core/models/session/onnxruntime-web.ts',
      '!src/browser/**',
      '!src/console/**',
      '!src/**/kernels/assembly/**',
      '!src/**/*.d.ts',
    ],
    // File by file, so that the child's entry and the workflow modules keep the places that `import.meta.url` points at.
    bundle: false,
    format: 'esm',
    target: 'node20',
    // What `scripts/build-kernels.mjs` compiles stays as long as it is of the present sources.
    clean: [
      '**/*',
      '!container.js',
      '!core/models/session/onnxruntime-web.js',
      '!console/**',
      '!**/compiled-kernels.js',
    ],
    silent: true,
  },
  {
    entry: ['src/container.ts'],
    format: 'esm',
    target: 'node20',
    noExternal: Object.keys(contained),
    footer: { js: `/*\nThis file contains the packages below.\n\n${licences.join('\n\n')}\n*/` },
    silent: true,
  },
  {
    entry: { 'core/models/session/onnxruntime-web': 'src/core/models/session/onnxruntime-web.ts' },
    format: 'esm',
    platform: 'node',
    target: 'node20',
    noExternal: [/./],
    minify: true,
    footer: { js: `/*\n${readFileSync('scripts/onnxruntime-licences.txt', 'utf8').trim()}\n*/` },
    silent: true,
  },
  {
    // The pages `/console`, `/operator` and `/docs`: a script and a style sheet each, which the HTTP side serves.
    entry: {
      app: 'src/console/app.tsx',
      docs: 'src/console/docs.ts',
      'compressed-source': 'src/console/compressed-source.ts',
      'on-device': 'src/console/on-device.ts',
      operator: 'src/console/operator/app.tsx',
      'operator-style': 'src/console/operator/operator.css',
      console: 'src/console/console.css',
      'docs-style': 'src/console/docs.css',
    },
    outDir: 'dist/console',
    tsconfig: 'tsconfig.console.json',
    publicDir: 'src/console/public',
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    // After esbuild: a gzipped script is 3 % smaller than by esbuild alone.
    minify: 'terser',
    terserOptions: { compress: { ecma: 2020, lhs_constants: false, inline: 1 } },
    splitting: false,
    noExternal: [/./],
    clean: true,
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
      // Pages send files, and those by XMLHttpRequest. Readers of compressed files are a script of their own.
      options.external = ['*/streamed-body.js', '*/compressed-source.js']
    },
  },
])
