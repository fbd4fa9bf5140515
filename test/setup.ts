import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** Of `test/made-once.ts`. */
    madeOnce: string
  }
}

/** Builds `build` and `dist` unless they are current: the tests run them (see `vitest.config.ts`). */
export default function setup(project: TestProject): () => void {
  build('--code')
  const folder = mkdtempSync(join(tmpdir(), 'stemwork-made-once-'))
  // Servers that are not root read from it.
  chmodSync(folder, 0o755)
  project.provide('madeOnce', folder)
  return () => rmSync(folder, { recursive: true })
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
