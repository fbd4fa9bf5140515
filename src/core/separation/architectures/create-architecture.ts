import { StemworkError } from '../../engine/errors.js'
import type { Manifest } from '../models/manifest.js'
import { embeddedKind } from './embedded.js'
import { htdemucsKind } from './htdemucs.js'
import { mdxKind } from './mdx.js'
import { roformerKind } from './roformer.js'
import { scnetKind } from './scnet.js'
import { spleeterKind } from './spleeter.js'
import { umxKind } from './umx.js'
import type { Kind, KindOptions, NetworkShape } from './architecture.js'
import type { StemName } from '../stems.js'

type KindFactory = (manifest: Manifest, networks: readonly NetworkShape[], options: KindOptions) => Promise<Kind>

interface KindEntry {
  create: KindFactory
  /** Options beside `stems` that it takes. */
  takes: readonly ('overlap' | 'denoise')[]
}

const kinds: Record<string, KindEntry> = {
  embedded: { create: embeddedKind, takes: [] },
  htdemucs: { create: htdemucsKind, takes: ['overlap'] },
  mdx: { create: mdxKind, takes: ['overlap', 'denoise'] },
  roformer: { create: roformerKind, takes: ['overlap'] },
  scnet: { create: scnetKind, takes: ['overlap'] },
  spleeter: { create: spleeterKind, takes: ['overlap'] },
  umx: { create: umxKind, takes: ['overlap'] },
}

/**
 * @throws StemworkError `INVALID_OPTIONS` for a kind that this version does not know, a network that does not fit its kind, or
 * an option or a stem that the model does not have
 */
export async function createKind(
  manifest: Manifest,
  networks: readonly NetworkShape[],
  options: KindOptions = {},
): Promise<Kind> {
  if (!Object.hasOwn(kinds, manifest.kind)) {
    throw new StemworkError(
      'INVALID_OPTIONS',
      `Model ${manifest.name} is of the kind ${JSON.stringify(manifest.kind)}; this version knows ${Object.keys(kinds).join(', ')}. Update stemwork or choose another model.`,
    )
  }
  const { create, takes } = kinds[manifest.kind]
  for (const option of ['overlap', 'denoise'] as const) {
    if (options[option] !== undefined && options[option] !== false && !takes.includes(option)) {
      throw new StemworkError(
        'INVALID_OPTIONS',
        `Model ${manifest.name} has no option ${option}: its kind, ${manifest.kind}, does not know it. Leave it out.`,
      )
    }
  }
  const kind = await create(manifest, networks, options).catch((error: unknown) => {
    if (!(error instanceof RangeError)) throw error
    throw new StemworkError(
      'INVALID_OPTIONS',
      `Model ${manifest.name} cannot be used: ${error.message} Correct its manifest.`,
      {
        cause: error,
      },
    )
  })
  const missing = options.stems?.find((stem) => !gives(kind, stem))
  if (missing === undefined) return kind
  kind.close()
  throw new StemworkError(
    'INVALID_OPTIONS',
    `Model ${manifest.name} does not give ${missing}; it gives ${manifest.stems.join(', ')}. Choose another model or other stems.`,
  )
}

/** The vocals are also what is left without the accompaniments. */
function gives({ stems }: Kind, stem: StemName): boolean {
  return stems.includes(stem) || (stem === 'vocals' && stems.includes('accompaniments'))
}
