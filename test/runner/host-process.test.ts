import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import type { WorkOrder } from '../../src/core/engine/ports/runner.js'
import { eventually, isAlive, orderTo } from './run-order.js'

function startHost(order: WorkOrder): ChildProcess {
  return spawn(
    process.execPath,
    [fileURLToPath(new URL('./fixtures/host.mjs', import.meta.url)), JSON.stringify(order)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
}

async function line(host: ChildProcess, beginning: string): Promise<string> {
  if (!host.stdout) throw new Error('the host has no stdout')
  for await (const text of createInterface(host.stdout))
    if (text.startsWith(beginning)) return text.slice(beginning.length)
  throw new Error(`the host ended without saying ${beginning}`)
}

const pidOf = (order: WorkOrder) => Number(readFileSync(join(order.directory, 'pid'), 'utf8'))

it.each([
  ['waits', 'wait'],
  ['never yields its thread', 'spin'],
])('a child that %s is gone soon after its host was killed', async (_, action) => {
  const order = orderTo(action)
  const host = startHost(order)
  await line(host, 'stage act')
  const child = pidOf(order)
  expect(isAlive(child)).toBe(true)
  host.kill('SIGKILL')
  await once(host, 'exit')
  await eventually(() => !isAlive(child), 10_000)
})

it('a host ends by itself while a warm child is idle, has no process handlers; the child goes with it', async () => {
  const order = orderTo('write')
  const host = startHost(order)
  const exited = once(host, 'exit')
  const { outputs, handlersAdded } = JSON.parse(await line(host, 'done '))
  expect(outputs).toEqual(['report'])
  expect(handlersAdded).toEqual([])
  expect(await exited).toEqual([0, null])
  await eventually(() => !isAlive(pidOf(order)))
})
