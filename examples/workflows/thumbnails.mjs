// Three sizes of a photo, made in parallel: npm install sharp, then stemwork serve --workflows thumbnails.mjs
import { writeFile } from 'node:fs/promises'
import sharp from 'sharp'
import { defineWorkflow, StemworkError } from 'stemwork'
import { z } from 'zod'

const sizes = { small: 160, medium: 480, large: 1280 }

export default defineWorkflow({
  id: 'service/thumbnails',
  name: 'Thumbnails',
  description: 'A photo in three sizes, none larger than the original.',
  params: z.object({ inputUrl: z.url(), format: z.enum(['webp', 'jpeg', 'avif']).default('webp') }),
  outputs: ({ format }) =>
    Object.fromEntries(
      Object.keys(sizes).map((size) => [size, { fileName: `${size}.${format}`, contentType: `image/${format}` }]),
    ),
  async run({ step, inputs, params: { format } }) {
    const thumbnail =
      (size) =>
      async ({ file }) => {
        const made = file(`${size}.${format}`)
        const fit = { width: sizes[size], height: sizes[size], fit: 'inside', withoutEnlargement: true }
        const picture = sharp(inputs.inputUrl.path).autoOrient().resize(fit).toFormat(format)
        await writeFile(made.path, await picture.toBuffer().catch(unreadable))
        return made
      }
    return await step.all(Object.fromEntries(Object.keys(sizes).map((size) => [size, thumbnail(size)])))
  },
})

function unreadable({ message }) {
  throw new StemworkError('BAD_INPUT', `The photo cannot be read: ${message}. Send a JPEG, PNG, WebP or AVIF.`)
}
