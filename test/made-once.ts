import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'

const patienceMs = 120_000

/**
 * The folder that `make` fills, once for all test files of a run, in whatever process. If another process is filling it
 * now, this waits.
 */
export function madeOnce(name: string, make: (folder: string) => void): string {
  const folder = join(inject('madeOnce'), name)
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

function isFirst(folder: string): boolean {
  try {
    mkdirSync(folder)
    return true
  } catch {
    return false
  }
}
