/** All that is not shown first, in one script: several would share so much that each would be split into pieces. */
export { SongPage } from './job-page.js'
export { keepFocus } from './keep-focus.js'
export { KeysPage } from './keys-page.js'
export { MiniWaveform } from './mini-waveform.js'
export { OptionCount, OptionFields } from './option-fields.js'
export { LinkSignIn } from './link-sign-in.js'
export { SignIn } from './sign-in.js'
export { LinkedJob } from './linked-job.js'
export { OfflinePage } from './offline-page.js'
export { BulkActions } from './bulk-actions.js'
export { UploadList } from './upload-row.js'
export { UploadQueue } from './upload-queue.js'
export { repeatJobs, saveArchive, stopJobs } from './job-requests.js'
export { applicationOfCode, signIn, signOut } from './session-requests.js'
export { explain } from './words.js'
export { checkOffline, forgetAllOffline, forgetOffline } from './offline-songs.js'

const style = document.createElement('link')
style.rel = 'stylesheet'
style.href = new URL('later-style.css', import.meta.url).href
// Without the style sheet, everything still works.
await new Promise((resolve) => {
  style.onload = style.onerror = resolve
  document.head.append(style)
})
