import { FloatPlanes } from '../../../media/dsp/float-planes.js'
import type { StemName, Stems } from '../../../models/stems.js'
import { alignedBlocks, type EnsembleMember } from './aligned-blocks.js'
import type { EnsembleStatistic } from '../../../models/ensemble-algorithm.js'
import { combineValues } from './combine-values.js'
import type { StemBlock } from './estimation.js'

/** Combines several estimates into one, sample by sample. The mixture is taken from the first member. */
export async function* combinedWaves(
  members: readonly EnsembleMember[],
  stems: readonly StemName[],
  statistic: EnsembleStatistic,
): AsyncGenerator<StemBlock, void, void> {
  const planes = new Map(stems.map((stem) => [stem, new FloatPlanes()]))
  for await (const blocks of alignedBlocks(members)) {
    const { mixture, sampleCount } = blocks[0]!
    const combined: Stems = {}
    for (const [stem, kept] of planes) {
      const given = blocks.flatMap(({ stems: { [stem]: values } }, index) =>
        values ? [{ values, weight: members[index]!.weight }] : [],
      )
      const weights = given.map(({ weight }) => weight)
      combined[stem] = kept.take(mixture.length, sampleCount)
      combined[stem].forEach((plane, channel) =>
        combineValues(statistic, { re: given.map(({ values }) => values[channel]!), weights }, { re: plane }),
      )
    }
    yield { sampleCount, stems: combined, mixture }
  }
}
