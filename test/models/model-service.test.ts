import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startService, type Stemwork } from '../cli/stemwork.js'
import { stereoMusic, worstDifference } from '../separation/architecture-run.js'
import { writeWav } from '../separation/tracks.js'
import { type ServiceClient, serviceClient } from './service-client.js'
import { type SharesModel, writeSharesModel } from './shares-model.js'
import { temporaryFolder } from '../temporary-folder.js'

const stemGains = { drums: 0.1, bass: 0.2, other: 0.3, vocals: 0.4 }
const song = stereoMusic(30_001)
const key = 'a key of the operator 1234'

const folder = temporaryFolder()
let service: { process: Stemwork; baseUrl: string }
let client: ServiceClient
let own: SharesModel
let allowed: SharesModel
beforeAll(async () => {
  await writeWav(join(folder, 'song.wav'), song, 44_100)
  own = await writeSharesModel(folder, 'own', stemGains)
  allowed = await writeSharesModel(folder, 'allowed', { drums: 0, bass: 0, other: 0, vocals: 0.9 })
  service = await startService([
    '--api-keys',
    key,
    '--model',
    own.manifest,
    '--allowed-models',
    own.manifest,
    '--allowed-models',
    allowed.manifest,
    '--stems-4',
    own.manifest,
  ])
  client = serviceClient(service.baseUrl, key, folder)
}, 120_000)
afterAll(async () => {
  service?.process.kill('SIGTERM')
  await service?.process.finished()
})

/** Accurate up to the offset of the mixture, which models of this architecture add to each stem. */
const share = (gain: number) => song.map((plane) => plane.map((sample) => gain * sample))

describe('a service with models of its own', () => {
  it('lists service/stems-4 together with the first workflow', async () => {
    const { workflows } = (await (await client.ask('/workflow?page=0&size=100')).json()) as {
      workflows: { id: string }[]
    }
    expect(workflows.map(({ id }) => id)).toEqual(
      expect.arrayContaining(['service/stems-vocals-accompaniment', 'service/stems-4']),
    )
  })

  it('gives its four stems, and names the model with its hash in the details', async () => {
    const { job, stems } = await client.separate('service/stems-4', join(folder, 'song.wav'))
    expect(job.details).toMatchObject({ model: { name: 'own', sha256: own.hash } })
    expect(job.details).not.toHaveProperty('hint')
    expect(Object.keys(stems).sort()).toEqual(['bass', 'drums', 'other', 'vocals'])
    for (const [stem, gain] of Object.entries(stemGains))
      expect(worstDifference(stems[stem]!, share(gain))).toBeLessThan(1e-3)
  }, 120_000)

  it('uses its own model, or that of a job if the host allows it', async () => {
    const usual = await client.separate('service/stems-vocals-accompaniment', join(folder, 'song.wav'))
    expect(usual.job.details).toMatchObject({ model: { name: 'own', sha256: own.hash } })
    expect(worstDifference(usual.stems.vocals!, share(0.4))).toBeLessThan(1e-3)
    const chosen = await client.separate('service/stems-vocals-accompaniment', join(folder, 'song.wav'), {
      model: allowed.manifest,
    })
    expect(chosen.job.details).toMatchObject({ model: { name: 'allowed', sha256: allowed.hash } })
    expect(worstDifference(chosen.stems.vocals!, share(0.9))).toBeLessThan(1e-3)
    expect(worstDifference(chosen.stems.accompaniments!, share(0.1))).toBeLessThan(1e-3)
    const refused = await client.ask('/job', {
      name: 'song',
      workflow: 'service/stems-vocals-accompaniment',
      params: { inputUrl: 'https://example.com/a.wav', model: 'scnet' },
    })
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain(allowed.manifest)
  }, 120_000)
})
