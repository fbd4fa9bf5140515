import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** Folder of `test/made-once.ts`. */
    madeOnce: string
  }
}

const memory = '/dev/shm'
/** Free memory for a run, which needs less than 1 GiB. */
const enoughMemory = 6 * 2 ** 30

/** Builds `build` and `dist` unless they are current: the tests run them (see `vitest.config.ts`). */
export default function setup(project: TestProject): () => void {
  build('--code')
  // On ext4, a new file takes half a millisecond of CPU time for minutes after many removals, as in tests.
  const place = !process.env.TMPDIR && hasRoomInMemory() ? memory : tmpdir()
  const folder = mkdtempSync(join(place, 'stemwork-tests-'))
  // Servers that do not run as root read from it.
  chmodSync(folder, 0o755)
  process.env.TMPDIR = folder
  project.provide('madeOnce', folder)
  return () => rmSync(folder, { recursive: true })
}

function hasRoomInMemory(): boolean {
  if (!existsSync(memory)) return false
  const { bavail, bsize } = statfsSync(memory)
  return Math.min(bavail * bsize, freemem()) > enoughMemory
}

export function build(...args: string[]): void {
  const script = fileURLToPath(new URL('../scripts/setup.mjs', import.meta.url))
  const { status } = spawnSync(process.execPath, [script, ...args], { stdio: 'inherit' })
  if (status !== 0) throw new Error('The build failed; the lines above say why. No test was run.')
}
