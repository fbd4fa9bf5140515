// Loads the plain kernels in programs that Node.js runs uncompiled: a child process of the tests, and the benchmark.
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const { outputFiles } = await build({
  entryPoints: [fileURLToPath(new URL('index.ts', import.meta.url))],
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  write: false,
  plugins: [
    {
      name: 'compiled-kernels',
      setup: ({ onResolve }) =>
        onResolve({ filter: /\/compiled-kernels\.js$/ }, () => ({
          path: fileURLToPath(new URL('../../../build/core/media/dsp/kernels/compiled-kernels.js', import.meta.url)),
        })),
    },
  ],
})
const encoded = Buffer.from(outputFiles[0].contents).toString('base64')
export const { plainKernels } = await import(`data:text/javascript;base64,${encoded}`)
