// Three sizes of a photo or of a frame of a video, side by side: stemwork serve --workflows thumbnails.mjs
import { defineWorkflow, program } from 'stemwork'
import { z } from 'zod'

const ffmpeg = program('ffmpeg', {
  badInput: /Invalid data found|matches no streams/,
  timeoutMs: 60_000,
  memoryMb: 1000,
})
const sizes = { small: 160, medium: 480, large: 1280 }
const kinds = { webp: 'image/webp', jpg: 'image/jpeg' }

export default defineWorkflow({
  id: 'service/thumbnails',
  name: 'Thumbnails',
  description: 'A picture in three sizes, none larger than it was.',
  params: z.object({
    inputUrl: z.url(),
    seconds: z.number().min(0).default(0).describe('Of a video: where the frame is taken.'),
    format: z.enum(['webp', 'jpg']).default('jpg'),
  }),
  outputs: ({ format }) =>
    Object.fromEntries(
      Object.keys(sizes).map((size) => [size, { fileName: `${size}.${format}`, contentType: kinds[format] }]),
    ),
  programs: [ffmpeg],
  async run({ step, inputs, params: { seconds, format } }) {
    const thumbnail = (size) => async (context) => {
      const made = context.file(`${size}.${format}`)
      const seek = seconds > 0 ? ['-ss', String(seconds)] : []
      const fit = `scale='min(${sizes[size]},iw)':'min(${sizes[size]},ih)':force_original_aspect_ratio=decrease`
      await ffmpeg.run(context, [...seek, '-i', inputs.inputUrl.path, '-vf', fit, '-frames:v', '1', made.path])
      return made
    }
    return await step.all(Object.fromEntries(Object.keys(sizes).map((size) => [size, thumbnail(size)])))
  },
})
