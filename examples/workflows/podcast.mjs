// A podcast: even loudness, no long silence, MP3 with chapters: stemwork serve --workflows podcast.mjs
import { writeFile } from 'node:fs/promises'
import { defineWorkflow, program } from 'stemwork'
import { z } from 'zod'

const ffmpeg = program('ffmpeg', { progress: 'ffmpeg', badInput: /Invalid data|contain any stream|not on whitelist/ })
const input = ['-nostdin', '-format_whitelist', 'mov,matroska,avi,mpegts,mp3,aac,wav,flac,ogg', '-i'] // no playlists
const withoutSilence = 'silenceremove=stop_periods=-1:stop_duration=1:stop_threshold=-50dB'
const chapter = z.object({ title: z.string().regex(/^[\w ,.!?'-]+$/), seconds: z.number().min(0) })

export default defineWorkflow({
  id: 'service/podcast',
  name: 'Podcast',
  description: 'A recording with even loudness and without long silences, as MP3 with chapters.',
  params: z.object({ inputUrl: z.url(), chapters: z.array(chapter).max(100).default([]) }),
  outputs: { episode: { fileName: 'episode.mp3', contentType: 'audio/mpeg' } },
  programs: [ffmpeg],
  async run({ step, inputs, params }) {
    const made =
      (name, ...options) =>
      async (context) => {
        await ffmpeg.run(context, [...input, ...options, context.file(name).path])
        return context.file(name)
      }
    const even = await step.run('level', made('even.wav', inputs.inputUrl.path, '-vn', '-af', 'loudnorm'))
    const dense = await step.run('silence', made('dense.wav', even.path, '-af', withoutSilence))
    const marks = await step.run('chapters', async ({ file }) => {
      const lines = params.chapters.map(({ title, seconds }, index) => {
        const end = params.chapters[index + 1]?.seconds ?? 86_400
        return `[CHAPTER]\nTIMEBASE=1/1000\nSTART=${seconds * 1000}\nEND=${end * 1000}\ntitle=${title}\n`
      })
      await writeFile(file('chapters.txt').path, `;FFMETADATA1\n${lines.join('')}`)
      return file('chapters.txt')
    })
    const all = made('episode.mp3', dense.path, '-i', marks.path, '-map_chapters', '1')
    return { episode: await step.run('encode', all) }
  },
})
