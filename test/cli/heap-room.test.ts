import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { growth } from '../../src/cli/service/heap-room.js'

const run = promisify(execFile)
const mebibyte = 1024 ** 2

/** Keeps 150 MiB alive, makes 900 MiB of garbage that survives minor collections, and prints the peak of the heap. */
const program = `
  (await import('${new URL('../../build/cli/service/heap-room.js', import.meta.url).href}')).keepHeapRoom()
  const objects = (count) => Array.from({ length: count }, (_, n) => ({ n, text: [n] }))
  const alive = []
  for (let turn = 0; turn < 100; turn++) {
    alive.push(objects(2e4))
    await new Promise(setImmediate)
  }
  const passing = Array(64).fill()
  let peak = 0
  for (let turn = 0; turn < 2200; turn++) {
    passing[turn % 64] = objects(4000)
    await new Promise(setImmediate)
    peak = Math.max(peak, process.memoryUsage().heapUsed)
  }
  console.log(JSON.stringify({ alive: alive.length, peak }))`

// Without the heap room, it is 650 to 1,000 MiB.
test('a service with much in its heap does not let as much garbage gather again', async () => {
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program])
  const { peak } = JSON.parse(stdout) as { peak: number }
  expect(peak / mebibyte).toBeLessThan(500)
})

test('the room is 48 MiB, but V8 decides for an empty heap, and a large one is not collected all the time', () => {
  expect(growth(2 * mebibyte)).toBe(300)
  expect(growth(48 * mebibyte)).toBe(100)
  expect(growth(96 * mebibyte)).toBe(50)
  expect(growth(1024 * mebibyte)).toBe(30)
})
