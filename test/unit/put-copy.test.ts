import { existsSync, readdirSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { memoryBlobs } from '../../src/adapters/memory.js'
import { putCopy } from '../../src/core/engine/ports/put-copy.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

test.runIf(existsSync('/proc/self/fd'))(
  'a file that a store rejects without reading it is closed, and cannot end the process once it is gone',
  async () => {
    const uncaught: unknown[] = []
    const note = (error: unknown) => void uncaught.push(error)
    process.on('uncaughtException', note)
    onTestFinished(() => void process.off('uncaughtException', note))
    const path = join(folder, 'part')
    await writeFile(path, 'kept work')
    const canceled = { signal: AbortSignal.abort(new Error('canceled')) }
    const open = () => readdirSync('/proc/self/fd').length
    const before = open()
    for (let n = 0; n < 20; n++)
      await expect(putCopy(memoryBlobs(), `part-${n}`, path, canceled)).rejects.toThrow('canceled')
    // Files may open only after the calls have returned.
    await delay(50)
    await expect.poll(open).toBeLessThanOrEqual(before)

    const rejected = putCopy(memoryBlobs(), 'part', path, canceled)
    await Promise.all([rm(path), expect(rejected).rejects.toThrow('canceled')])
    await expect(putCopy(memoryBlobs(), 'part', path, canceled)).rejects.toThrow('canceled')
    await delay(50)
    expect(uncaught).toEqual([])
  },
)
