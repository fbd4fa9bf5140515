import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Builds `dist` unless it is of the present sources: the tests run it (see `vitest.config.ts`). */
export default function setup(): void {
  build('--code')
}

/** Builds the declarations of types, too, which few tests need. */
export function buildDeclarations(): void {
  build()
}

function build(...args: string[]): void {
  const script = fileURLToPath(new URL('../scripts/setup.mjs', import.meta.url))
  const { status } = spawnSync(process.execPath, [script, ...args], { stdio: 'inherit' })
  if (status !== 0) throw new Error('The build failed; the lines above say why. No test was run.')
}
