import type { KernelName } from '../../../src/core/media/dsp/kernels/kernel-bytes.js'
import { plainDotProduct } from './dot-product.js'
import { plainFlacKernels } from './flac-kernels.js'
import { plainFrameKernels } from './frame-kernels.js'
import { plainMp3Kernels } from './mp3-kernels.js'
import { plainStereoPacking } from './pack-stereo.js'
import { plainWienerKernels } from './wiener-kernels.js'

/**
 * The kernels in plain TypeScript, over a memory of floats: references for the compiled kernels. Both round at the
 * same steps and add in the same order, so they agree bit for bit.
 */
export const plainKernels = {
  'dot-product': plainDotProduct,
  'flac-kernels': plainFlacKernels,
  'frame-kernels': plainFrameKernels,
  'mp3-kernels': plainMp3Kernels,
  'pack-stereo': plainStereoPacking,
  'wiener-kernels': plainWienerKernels,
} satisfies Record<KernelName, unknown>
