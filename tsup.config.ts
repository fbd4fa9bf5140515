import { defineConfig } from 'tsup'

export default defineConfig([
  {
    entry: ['src/**/*.ts', '!src/console/**', '!src/**/kernels/assembly/**'],
    // File by file, so that the child's entry and the workflow modules keep the places that `import.meta.url` points at.
    bundle: false,
    format: 'esm',
    target: 'node20',
    // What `scripts/build-kernels.mjs` compiles stays as long as it is of the present sources.
    clean: ['**/*', '!console/**', '!**/*.wasm'],
    silent: true,
  },
  {
    // The pages `/console`, `/operator` and `/docs`: a script and a style sheet each, which the HTTP side serves.
    entry: {
      app: 'src/console/app.tsx',
      docs: 'src/console/docs.ts',
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
    terserOptions: { compress: { ecma: 2020, passes: 3 } },
    splitting: false,
    noExternal: [/./],
    clean: true,
    silent: true,
    esbuildOptions(options) {
      options.minify = true
      options.jsx = 'automatic'
      options.jsxImportSource = 'preact'
    },
  },
])
