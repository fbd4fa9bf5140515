import { StemworkError } from '../../engine/errors.js'

/** Loads an optional package that encodes a format. */
export async function encoderPackage<Module>(
  name: string,
  format: string,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    return await load()
  } catch (error) {
    throw new StemworkError(
      'MISSING_DEPENDENCY',
      `Writing ${format} needs the package ${name}, which could not be loaded. Install it: npm install ${name}`,
      { cause: error },
    )
  }
}
