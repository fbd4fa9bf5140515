/** Name of an output's file in the folder of its run. */
export function outputFile(name: string, fileName: string): string {
  return `output.${name}.${fileName}`
}

/**
 * Its name while the file is written from start to end. What is written stays as it is, except for the lengths in its
 * header.
 */
export function growingOutputFile(name: string, fileName: string): string {
  return `${outputFile(name, fileName)}.part`
}

/** Peaks of that file, as far as it is written, where the workflow keeps them. */
export function growingPeaksFile(name: string, fileName: string): string {
  return `${growingOutputFile(name, fileName)}.peaks`
}
