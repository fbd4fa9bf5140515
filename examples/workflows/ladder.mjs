// A video in three sizes, made in parallel, and then a playlist of them: stemwork serve --workflows ladder.mjs
import { writeFile } from 'node:fs/promises'
import { defineWorkflow, program } from 'stemwork'
import { z } from 'zod'

const ffmpeg = program('ffmpeg', { progress: 'ffmpeg', badInput: /Invalid data|matches no streams|not on whitelist/ })
// A file of another format, such as a playlist, could name other files of this machine.
const input = ['-nostdin', '-format_whitelist', 'mov,matroska,avi,mpegts,mp3,aac,wav,flac,ogg', '-i']
const heights = [240, 360, 480]
const video = (height) => [`video${height}`, { fileName: `${height}p.mp4`, contentType: 'video/mp4' }]

export default defineWorkflow({
  id: 'service/ladder',
  name: 'Ladder',
  description: 'A video in three sizes, with a playlist.',
  params: z.object({ inputUrl: z.url() }),
  outputs: {
    playlist: { fileName: 'playlist.m3u8', contentType: 'audio/x-mpegurl' },
    ...Object.fromEntries(heights.map(video)),
  },
  programs: [ffmpeg],
  async run({ step, inputs }) {
    const rendition = (height) => async (context) => {
      const made = context.file(`${height}p.mp4`)
      const options = ['-vf', `scale=-2:${height}`, '-movflags', '+faststart']
      await ffmpeg.run(context, [...input, inputs.inputUrl.path, ...options, made.path])
      return made
    }
    const videos = await step.all(Object.fromEntries(heights.map((height) => [`video${height}`, rendition(height)])))
    const playlist = await step.run('playlist', async ({ file }) => {
      const lines = heights.map((height) => `#EXTINF:-1,${height}p\n${height}p.mp4\n`)
      await writeFile(file('playlist.m3u8').path, `#EXTM3U\n${lines.join('')}`)
      return file('playlist.m3u8')
    })
    return { playlist, ...videos }
  },
})
