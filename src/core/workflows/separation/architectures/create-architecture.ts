import { invalidOptions } from '../../../engine/errors.js'
import { knownModels } from '../../../models/known-models.js'
import { beatArchitecture, type Manifest } from '../../../models/manifest.js'
import { embeddedArchitecture } from './embedded.js'
import { htdemucsArchitecture } from './htdemucs.js'
import { mdxArchitecture } from './mdx.js'
import { roformerArchitecture } from './roformer.js'
import { scnetArchitecture } from './scnet.js'
import { spleeterArchitecture } from './spleeter.js'
import { umxArchitecture } from './umx.js'
import type { Architecture, ArchitectureFactory, ArchitectureOptions, NetworkShape } from './architecture.js'
import type { StemName } from '../../../models/stems.js'

interface ArchitectureEntry {
  create: ArchitectureFactory
  /** Options that it supports besides `stems`. */
  takes: readonly ('overlap' | 'denoise')[]
}

const architectures: Record<string, ArchitectureEntry> = {
  embedded: { create: embeddedArchitecture, takes: [] },
  htdemucs: { create: htdemucsArchitecture, takes: ['overlap'] },
  mdx: { create: mdxArchitecture, takes: ['overlap', 'denoise'] },
  roformer: { create: roformerArchitecture, takes: ['overlap'] },
  scnet: { create: scnetArchitecture, takes: ['overlap'] },
  spleeter: { create: spleeterArchitecture, takes: ['overlap'] },
  umx: { create: umxArchitecture, takes: ['overlap'] },
}

/**
 * @throws StemworkError `INVALID_OPTIONS` for an unknown architecture, a network that does not fit its architecture, or
 * an option or stem that the model does not support
 */
export async function createArchitecture(
  manifest: Manifest,
  networks: readonly NetworkShape[],
  options: ArchitectureOptions = {},
): Promise<Architecture> {
  if (manifest.architecture === beatArchitecture) {
    throw invalidOptions(
      `Model ${manifest.name} finds beats and separates nothing. Use it with "stemwork analyze --beats ` +
        `${manifest.name}", or choose another model.`,
    )
  }
  if (!Object.hasOwn(architectures, manifest.architecture)) {
    throw invalidOptions(
      `Model ${manifest.name} has the architecture ${JSON.stringify(manifest.architecture)}, which this version ` +
        `does not know. It knows ${Object.keys(architectures).join(', ')}. Update stemwork or choose another ` +
        'model.',
    )
  }
  const { create, takes } = architectures[manifest.architecture]!
  for (const option of ['overlap', 'denoise'] as const) {
    if (options[option] !== undefined && options[option] !== false && !takes.includes(option)) {
      throw invalidOptions(
        `Model ${manifest.name} does not support the option ${option}: its architecture, ${manifest.architecture}, ` +
          'has no such option. Leave it out.',
      )
    }
  }
  const architecture = await create(manifest, networks, options).catch((error: unknown) => {
    if (!(error instanceof RangeError)) throw error
    throw invalidOptions(`Model ${manifest.name} cannot be used: ${error.message} Correct its manifest.`, error)
  })
  const missing = options.stems?.find((stem) => !gives(architecture, stem))
  if (missing === undefined) return architecture
  architecture.close()
  const others = knownModels.map(({ facts }) => facts).filter(({ stems }) => stems.includes(missing))
  throw invalidOptions(
    `Model ${manifest.name} does not produce ${missing}; it produces ${manifest.stems.join(', ')}. Choose other ` +
      `stems or another model${others.length > 0 ? `, such as ${others.map(({ name }) => name).join(', ')}` : ''}.`,
  )
}

/** Vocals can also be derived: the mixture minus the accompaniments. */
function gives({ stems }: Architecture, stem: StemName): boolean {
  return stems.includes(stem) || (stem === 'vocals' && stems.includes('accompaniments'))
}
