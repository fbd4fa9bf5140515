import { resolve } from 'node:path'
import { readFileSync } from 'node:fs'
import { defineConfig } from 'tsup'

/** `stemwork/browser`: a script for the page, those of its workers and that of the audio thread. After `scripts/build-kernels.mjs`. */
export default defineConfig({
  entry: {
    index: 'src/browser/index.ts',
    worker: 'src/browser/worker.ts',
    'live-worker': 'src/browser/live-worker.ts',
    'live-processor': 'src/browser/live-processor.ts',
  },
  outDir: 'dist/browser',
  tsconfig: 'tsconfig.browser.json',
  platform: 'browser',
  format: 'esm',
  target: 'es2022',
  noExternal: [/./],
  minify: true,
  splitting: true,
  footer: { js: `/*\n${readFileSync('scripts/onnxruntime-licences.txt', 'utf8').trim()}\n*/` },
  silent: true,
  esbuildPlugins: [
    {
      name: 'browser',
      setup({ onResolve, onLoad }) {
        onResolve({ filter: /\/compiled-kernels\.js$/ }, () => ({
          path: resolve('dist/core/media/dsp/kernels/compiled-kernels.js'),
        }))
        // Packages that run on Node.js, too, would import these there. Our own code does not (test/architecture).
        onResolve({ filter: /^(node:.*|module|fs|path|url|worker_threads)$/ }, ({ path }) => ({
          path,
          namespace: 'nothing',
        }))
        onLoad({ filter: /.*/, namespace: 'nothing' }, () => ({ contents: '' }))
      },
    },
  ],
})
