import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { root } from '../package/tarball.js'

/**
 * Separates a song by plain requests.
 *
 * @param mount address of the mount as the test reaches it
 * @param publicUrl the start of the service's links
 */
export async function separateOverHttp(
  mount: string,
  { publicUrl = mount, key }: { publicUrl?: string; key?: string } = {},
): Promise<void> {
  const headers = { ...(key === undefined ? {} : { authorization: key }), 'content-type': 'application/json' }
  const reach = (link: string) => {
    expect(link.slice(0, publicUrl.length)).toBe(publicUrl)
    return mount + link.slice(publicUrl.length)
  }
  const ticket = await json<{ uploadUrl: string; downloadUrl: string }>(fetch(`${mount}/upload`, { headers }))
  const song = readFileSync(join(root, 'test/fixtures/audio/stereo.mp3'))
  await json(fetch(reach(ticket.uploadUrl), { method: 'PUT', body: song }))
  const body = JSON.stringify({
    workflow: 'service/stems-vocals-accompaniment',
    params: { inputUrl: ticket.downloadUrl },
  })
  const { id } = await json<{ id: string }>(fetch(`${mount}/job`, { method: 'POST', headers, body }))
  let job: { status: string; error: unknown; result?: { vocals: string } }
  do {
    job = await json(fetch(`${mount}/job/${id}`, { headers: { ...headers, prefer: 'wait=30' } }))
  } while (job.status === 'QUEUED' || job.status === 'STARTED')
  expect(job).toMatchObject({ status: 'SUCCEEDED' })
  const vocals = Buffer.from(await (await fetch(reach(job.result?.vocals ?? ''))).arrayBuffer())
  expect(vocals.toString('latin1', 0, 4)).toBe('RIFF')
}

async function json<Answer>(answer: Promise<Response>): Promise<Answer> {
  const response = await answer
  const text = await response.text()
  expect(response.status, text).toBe(200)
  return JSON.parse(text) as Answer
}
