import { type OutputFormat, outputFormats } from './output-format.js'

/** Optional packages that formats need. */
const packages: Partial<Record<OutputFormat, string>> = {
  mp3: 'wasm-media-encoders',
}

/** The package that a format needs and that is not installed; undefined for a format that can be written. */
export function missingPackage(format: OutputFormat): string | undefined {
  const name = packages[format]
  if (name === undefined) return undefined
  try {
    import.meta.resolve(name)
    return undefined
  } catch {
    return name
  }
}

/** The formats that can be written with what is installed. */
export function availableFormats(): OutputFormat[] {
  return outputFormats.filter((format) => missingPackage(format) === undefined)
}
