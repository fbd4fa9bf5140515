// A preview that someone approves before the whole file is made: engine.sendEvent(jobId, 'approval', { by: 'Ann' })
import { defineWorkflow, program, StemworkError } from 'stemwork'
import { z } from 'zod'

const ffmpeg = program('ffmpeg', { progress: 'ffmpeg', badInput: /Invalid data found|not on whitelist/ })
// A file of another format, such as a playlist, could name other files of this machine.
const input = ['-nostdin', '-format_whitelist', 'mov,matroska,avi,mpegts,mp3,aac,wav,flac,ogg', '-i']
const week = 7 * 24 * 3600 * 1000

export default defineWorkflow({
  id: 'service/approved',
  name: 'Approved',
  description: 'An MP3, once someone has approved its preview.',
  params: z.object({ inputUrl: z.url() }),
  outputs: { audio: { fileName: 'audio.mp3', contentType: 'audio/mpeg' } },
  programs: [ffmpeg],
  async run({ step, inputs, detail }) {
    const encode =
      (name, ...options) =>
      async (context) => {
        const made = context.file(name)
        await ffmpeg.run(context, [...input, inputs.inputUrl.path, ...options, made.path])
        return made
      }
    await step.run('preview', encode('preview.mp3', '-t', '5'))
    const approval = await step.waitFor('approval', { timeoutMs: week })
    if (!approval) throw new StemworkError('BAD_INPUT', 'Nobody approved the preview within a week. Send it again.')
    detail('approvedBy', approval.by)
    return { audio: await step.run('whole', encode('audio.mp3', '-b:a', '192k')) }
  },
})
