/** A little above what was measured: who exceeds one says why in the change that raises it. */
export const limits = { tarballBytes: 6.7e6, installedBytes: 60e6, installedPackages: 56, importedModules: 240 }
