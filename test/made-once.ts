import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'

const patienceMs = 120_000

/**
 * The folder that `make` fills, once for all test files of a run, in any process. While another process fills it, this
 * waits.
 */
export function madeOnce(name: string, make: (folder: string) => void): string {
  const folder = join(folderOfRun(), name)
  const done = `${folder}.done`
  for (const begin = Date.now(); !existsSync(done);) {
    if (isFirst(folder)) {
      try {
        make(folder)
        writeFileSync(done, '')
      } catch (error) {
        // The next caller tries again, and reports the failure.
        rmSync(folder, { recursive: true })
        throw error
      }
    } else if (Date.now() - begin > patienceMs) throw new Error(`${folder} was begun, and is not ready.`)
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
  }
  return folder
}

let own: string | undefined

/** In a benchmark, which is not a test run, a folder of this process. */
function folderOfRun(): string {
  try {
    return inject('madeOnce')
  } catch {
    if (own !== undefined) return own
    const made = mkdtempSync(join(tmpdir(), 'stemwork-made-once-'))
    // Servers that do not run as root read from it.
    chmodSync(made, 0o755)
    process.once('exit', () => rmSync(made, { recursive: true, force: true }))
    return (own = made)
  }
}

function isFirst(folder: string): boolean {
  try {
    mkdirSync(folder)
    return true
  } catch {
    return false
  }
}
