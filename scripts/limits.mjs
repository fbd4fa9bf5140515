/**
 * A little above what was measured, by the names of scripts/figures.json: who exceeds one says why in the change that
 * raises it. Times are of the processor, with room for slower ones.
 */
export const limits = {
  tarballBytes: 7.0e6,
  unpackedBytes: 21.23e6,
  installedBytes: 60e6,
  installedPackages: 56,
  importedModules: 165,
  importCpuMs: 400,
  consoleBytes: 25e3,
  operatorBytes: 21.5e3,
  docsBytes: 22e3,
  typeInstantiations: 100e3,
  typeCheckCpuMs: 10e3,
}
