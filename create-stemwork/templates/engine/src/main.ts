import { mkdir, writeFile } from 'node:fs/promises'
import { join, parse } from 'node:path'
import { createEngine, localFile } from 'stemwork'

const songs = process.argv.slice(2)
if (songs.length === 0) throw new Error('Name the songs: npm start song.mp3')

const engine = createEngine()
try {
  for (const song of songs) {
    const { job } = await engine.submit({
      app: 'me',
      workflow: 'service/stems-vocals-accompaniment',
      inputs: { inputUrl: localFile(song) },
    })
    const done = await engine.run(job.id)
    if (!done?.outputs) throw new Error(`${song}: ${done?.error?.message ?? 'its job was deleted'}`)
    const folder = join('stems', parse(song).name)
    await mkdir(folder, { recursive: true })
    for (const { key, fileName } of Object.values(done.outputs)) {
      const file = await engine.blobs.get(key)
      if (file) await writeFile(join(folder, fileName), file.body)
      console.log(join(folder, fileName))
    }
    await engine.delete(job.id)
  }
} finally {
  await engine.close()
}
