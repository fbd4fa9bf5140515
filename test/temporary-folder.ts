import { randomBytes } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'

/** A folder that exists while the tests of the file, or of the `describe` that calls this, run. */
export function temporaryFolder(): string {
  const folder = newPath()
  beforeAll(() => mkdir(folder, { mode: 0o700 }))
  afterAll(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A folder that is empty at the start of each test. */
export function folderOfEachTest(): string {
  const folder = newPath()
  beforeEach(() => mkdir(folder, { mode: 0o700 }))
  afterEach(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

function newPath(): string {
  return join(tmpdir(), `stemwork-test-${randomBytes(6).toString('hex')}`)
}
