import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'

const patienceMs = 120_000

/**
 * The folder that `make` fills, once for all test files of a run, in whatever process. If another process is filling it
 * now, this waits.
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
        // The next one tries again, and reports why it fails.
        rmSync(folder, { recursive: true })
        throw error
      }
    } else if (Date.now() - begin > patienceMs) throw new Error(`${folder} was begun, and is not ready.`)
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
  }
  return folder
}

let own: string | undefined

/** In a benchmark, which is no run of tests, one of this process. */
function folderOfRun(): string {
  try {
    return inject('madeOnce')
  } catch {
    if (own !== undefined) return own
    const made = mkdtempSync(join(tmpdir(), 'stemwork-made-once-'))
    // Servers that are not root read from it.
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
