import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fsBlobs } from '../../src/adapters/blobs/fs/fs-blobs.js'
import { memoryJobs } from '../../src/adapters/memory.js'
import { localFile } from '../../src/core/engine/intake/local-file.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import { stemsWorkflow } from '../../src/core/workflows/separation/stems-workflow.js'
import { createEngine } from '../../src/create-engine.js'
import { silentLogger } from '../../src/core/engine/ports/logger.js'
import { noise, writeWav } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

const workflow = 'service/stems-vocals-accompaniment'

test('a separation that gives way to a song of another application makes the same files as undisturbed', async () => {
  const [long, short] = [await song('long.wav', 60), await song('short.wav', 2)]
  const blobs = fsBlobs({ directory: join(folder, 'blobs') })
  const engine = createEngine({
    jobs: memoryJobs(),
    blobs,
    workflows: [stemsWorkflow({ threads: 1 })],
    checkpoints: { afterMs: 0, everyMs: 1 },
    dispatch: { concurrency: 1, preemptAfterMs: 1, niceness: 0 },
    logger: silentLogger,
  })
  const submit = async (app: string, path: string) =>
    (await engine.submit({ app, workflow, inputs: { inputUrl: localFile(path) }, params: { format: 'flac' } })).job
  const ended = (id: string) =>
    new Promise<JobRecord>((resolve) => {
      const onEnd = ({ job }: { job: JobRecord }) => job.id === id && resolve(job)
      engine.on('job.succeeded', onEnd).on('job.failed', onEnd)
    })
  const preempted: string[] = []
  engine.on('job.preempted', ({ job }) => preempted.push(job.id))
  await engine.start()
  try {
    const alone = await submit('patient', long)
    const undisturbed = await ended(alone.id)

    const started = new Promise((resolve) => engine.on('job.started', resolve))
    const job = await submit('patient', long)
    const result = ended(job.id)
    await started
    const other = await submit('hurried', short)
    const quick = await ended(other.id)
    expect(quick.status).toBe('SUCCEEDED')
    const resumed = await result
    expect(preempted).toEqual([job.id])
    expect(resumed).toMatchObject({ status: 'SUCCEEDED', attempts: 1 })
    expect(resumed.history.map(({ outcome }) => outcome)).toEqual(['preempted', 'succeeded'])
    expect(await hashes(resumed)).toEqual(await hashes(undisturbed))
  } finally {
    await engine.close()
  }

  async function hashes({ outputs }: JobRecord): Promise<string[]> {
    const found: string[] = []
    for (const name of ['vocals', 'accompaniments']) {
      const blob = await blobs.get(outputs?.[name]?.key ?? '')
      const hash = createHash('sha256')
      for await (const chunk of blob?.body ?? []) hash.update(chunk)
      found.push(hash.digest('hex'))
    }
    return found
  }
})

async function song(name: string, seconds: number): Promise<string> {
  const path = join(folder, name)
  const samples = seconds * 44_100
  await writeWav(path, [noise(samples, 1), noise(samples, 2)], 44_100, '16')
  return path
}
