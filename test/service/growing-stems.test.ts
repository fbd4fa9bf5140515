import { expect, test } from 'vitest'
import { noise } from '../separation/tracks.js'
import { wavFile } from '../separation/wav-file.js'
import { startStemsService } from './stems-service.js'

const seconds = 5
/** The header of a 16-bit WAV result, whose length fields are known only at the end. */
const headerBytes = 80

test('a stem can be read while it is separated, and equals the result except for lengths in its header', async () => {
  const samples = Int16Array.from(noise(seconds * 44_100, 7), (value) => value * 8000)
  const song = wavFile({ tag: 1, bits: 16, channels: 1, data: Buffer.from(samples.buffer) })
  const { engine, files, close } = await startStemsService((_request, response) => response.end(song))
  try {
    const { job } = await engine.submit({
      app: 'test',
      workflow: 'service/stems-vocals-accompaniment',
      params: { inputUrl: `${files}/song.wav` },
    })
    const read: Buffer[] = []
    for (;;) {
      const now = await engine.get(job.id)
      const growing = now && (await engine.growingResult(now, 'vocals'))
      if (growing) {
        for await (const chunk of growing.follow(new AbortController().signal)) read.push(Buffer.from(chunk))
        break
      }
      expect(now?.status).not.toBe('SUCCEEDED')
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    const ended = await engine.run(job.id)
    const blob = await engine.blobs.get(ended!.outputs!.vocals!.key)
    const result: Buffer[] = []
    for await (const chunk of blob!.body) result.push(Buffer.from(chunk))
    const [grown, whole] = [Buffer.concat(read), Buffer.concat(result)]
    expect(grown.length).toBe(whole.length)
    expect(grown.subarray(headerBytes).equals(whole.subarray(headerBytes))).toBe(true)
  } finally {
    await close()
  }
})
