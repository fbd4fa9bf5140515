import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { AnswerDeadline } from './answer-deadline.js'
import { type Backend, parsed } from './backend.js'
import type { KeyLocks } from './key-locks.js'

const deploymentKey = 'stemwork/deployment'
const deploymentSchema = z.object({ deployment: z.string(), pass: z.number().int(), at: z.number() })

/** See `JobStore.beginFilePass`: one entry has the name of the deployment, and the number and time of its last pass. */
export async function beginFilePass(
  everyMs: number,
  {
    backend,
    locks,
    deadline,
    clock,
  }: { backend: Backend; locks: KeyLocks; deadline: AnswerDeadline; clock: () => number },
): Promise<{ deployment: string; pass: number } | undefined> {
  return locks.hold(deploymentKey, async () => {
    deadline.check()
    const last = parsed(deploymentSchema, deploymentKey, await backend.read(deploymentKey))
    const now = clock()
    if (last && last.at > now - everyMs) return undefined
    const begun = { deployment: last?.deployment ?? randomUUID(), pass: (last?.pass ?? 0) + 1 }
    await backend.write(deploymentKey, JSON.stringify({ ...begun, at: now }))
    return begun
  })
}
