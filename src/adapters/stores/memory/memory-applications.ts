import type { ApiKey, Application, ApplicationStore } from '../../../core/engine/ports/application-store.js'
import { copyPlain } from '../shared/record-copy.js'

/** Applications and their keys in this process's memory. */
export function memoryApplications(): ApplicationStore {
  const applications = new Map<string, Application>()
  const keys = new Map<string, ApiKey>()

  return {
    async putApplication(application) {
      applications.set(application.id, copyPlain(application))
    },
    async getApplication(id) {
      return copyPlain(applications.get(id))
    },
    async listApplications() {
      return newestFirst(copyPlain([...applications.values()]))
    },
    async putKey(key) {
      keys.set(key.id, copyPlain(key))
    },
    async getKey(id) {
      return copyPlain(keys.get(id))
    },
    async listKeys(app) {
      return newestFirst(copyPlain([...keys.values()].filter((key) => key.app === app)))
    },
  }
}

function newestFirst<Entry extends { createdAt: number; id: string }>(entries: Entry[]): Entry[] {
  return entries.sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
}
