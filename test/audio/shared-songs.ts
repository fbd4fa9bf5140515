import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * CC0 songs that lie beside some checkouts and are in no package. Elsewhere, their tests are skipped and
 * counted.
 */
const folder = fileURLToPath(new URL('../../../shared/data/everything-is-free/', import.meta.url))

export interface SharedSong {
  name: string
  vocals: string
  accompaniments: string
}

export const sharedSongs: SharedSong[] = ['hydrogen', 'lithium', 'potassium', 'rubidium', 'sodium'].map((name) => ({
  name,
  vocals: join(folder, name, 'vocals.ogg'),
  accompaniments: join(folder, name, 'accompaniments.ogg'),
}))

export const hasSharedSongs = sharedSongs.every(({ vocals }) => existsSync(vocals))
