/** A prefix code for pairs of values up to 15, or for four values of 0 or 1, without the signs that follow. */
export interface Code {
  /** By the pair `x << 4 | y`, or by four bits. */
  readonly bits: Uint16Array
  readonly lengths: Uint8Array
}

/**
 * The codes of ISO/IEC 11172-3, table B.7, for pairs: their values and their length in bits, one digit each (lengths to
 * base 36), in the order of the codes. As each code follows the one before, nothing else is needed. 16 and 24 stand for
 * all tables with escapes.
 */
const pairDigits: Record<number, string> = {
  1: '113013102001',
  2: '226026125215205113013103001',
  3: '226026125215205103112012002',
  5: '338238327316137037307227126216026206113013103001',
  6: '337037236326306135315225025124214204013112103003',
  7: '55a45a54a53a359449259529158518059349508439339248428147417407048238328038137317307227126215026206114013103001',
  8: '55b54b45a53935a44a259529059158518349439509339248428148417048408238328138318038308226026206124214112013103002',
  9: '559459358538549059448258528158517347437508048247427337407146416236326135315036306225025124214204113013103003',
  10:
    '77b67b76b57b75b66b47a74a56a65a37a73a46a55b54b63a27972964a07a70962945a35a06953a44a17871836926925a52a15951934a43a168618608' +
    '059509249429339049148418408238328038137317307227126216026206114013103001',
  11:
    '77a67a76a75a66a47a74a57b55b56a65a37973946945a54a35a53a278728649079717178708368638608449259529059158627268068167617518348' +
    '508439339248428148418048408237327136316037307226215124025205113013103002',
  12:
    '77a67a769579759669479749659568378739559278728468648178718079709368638458548448069059267627617168608358538258528157517347' +
    '437508048247427147336416236326407037306135315225124214025205004113013103',
  13:
    'fejfcjfdiedhffgefgdfgeegcfgdegbfgfbgcegdcgafhe9hecfddffagcdgbefebf9fff9feafbdfdbf8fff8fccfaeg9eg8ef7fg7egf7edaeadfbcfcbf' +
    'f6f6fee8e5fe9ded9ef5ee7eacebbe4fef4ecafe6ff3e3fd8ded8e2fdf2d6ee9ce0fdc9e5eeabd7ded7e4edc8ed6e3edb9d9beaae1fcf1cf0cbade5d' +
    'e4d8cd6dde3de2c2ed0ed1ece1ce0d5ddd5d7cdc7d4dd8bdb8dd4d9ada9d6cdc6c3dcd3d7bd2dcd2c1dcb7c5cdc5d99d7adc3ca7d97d4bcd1b0dcd0c' +
    '8aca8c4ccc4c6bcb6c3cb2cbc2b5bbb5c89c1cbc1b98c0ccc0bb4c6aca6c79c3bbb3b88c5ac2bba5c69ca4b78c87c94b77c76cb2a1bab1a0bbb0b96b' +
    '4ab3aba3b59b95b2aaa2a1aaa1a0ab68ba0a86b49b93a39b58b85b67b29a92a57b75b38a83a66b47b74b56b65b73b19991909a90a48a84a72a46b64b' +
    '28982918937a27a17971955a07a70a36a63a45a54a26a62a35a81808980916961906960953a44a259529059158518349439509249429339148417048' +
    '408238328137317037307227126216026206114014103001',
  15:
    'ffdefdfeddfdeecfddcfdfcddededdbfdfbccedecdddcafcfacbecebccdcdcc9fcf9ceacbdcdbc8fcf8cccc9ece9c7fcf7cadcdacbcc6fcaed0fdcbb' +
    'f6b8ece8c5fc9dcf5b7ebe7bacbcabbbbd9c8dc4fbf4b3fbf3bd8be6b2fbf2b6ecf0c1fbf1b9cbc9b5ebabbbabe5b7dbd7b4ebe4b8cbc8b3eb6dbd6b' +
    'e3b9bbb9b2ebaabe2b1ebe1b0ece0c5dbd5b7cbc7b4db8bbd4ab8b9aba9b6cbc6b3dbd3ad2a2db0db1da7bab7ad1a5cbd0bc5a8aaa8a4cac4a6bab6a' +
    '99b0cb3cac3a7aaa7aa6ac0b0bbc292ca5bab5a1ca89a98ac1a4bab4a6aa3ba79ab3997a88a2ba5aab29a5a1bab19b0a69a96a4aaa4a78a87a3aaa39' +
    '5999592a9a291a9a190aaa0a68986949994939993977a09a589859299679769929918199909489849579759389839669479288828188818749089809' +
    '569659379739469278728648178558718079709368638458548268628168069609358617538448257527157517058508347437247427337416147047' +
    '236326407037136316306225125215025205113014104003',
  16:
    'efbfebdfbfdbcfbfcbbfbfbbafafab9fbf9bf8b8fa7faf7a6faf6aff85faf5a4f9f49f39f093facegechddhdefe9feagd9geeeedfebfbeecdedcfdbf' +
    'aeecceadfdaf7efacfcaec9f7df5eebddf282f90f91f8f189edbcecbe8eee8e9dee7ebbe8ded8e6eee6d9cdabebaee5ed7e4ede4e8cec8d3ed6ddd6e' +
    '9beb9eaaee1dd4db8ea9e7bdb7ed0ee3c0ede0d5ddd5d7cdc7d4dd8bd9ad6cdc6d3dd5cdc5d0dc8ada8d99d4cdb6d7ad3cc5bd89d1ccc0c98d79de2b' +
    '2ec1ecd3c2dcd2cd1c3bc97d88d1dbc4c6bcc3ca7c2cbc2cb5cc1c0cc4bcb4c6aca6cb3b5aca5c2bbb2b1bbb1b0bcb0c69c96c4aca4c78c87ca3b3ac' +
    '59c2ab95c68ca1b86c77c94b49c57c67ba2a1aa0aba0b39b93b58b85b29a92a76b09b19a91a90b48b84b75b38b83b66b28b82a47b74b18a81a80a08b' +
    '56b37a73a65b46b27a72a64b55b07a17971970a36a63a45a54a26a62916961906a60a53935a44a259529518159059349439509249429339148418049' +
    '409238328137317038308227126216026206114014103001',
  24:
    'ef8fe8df8fd8cf8fc8bf8fb8fa7af89f8f97f878f87f8f776f7f675f7f574f7f473f7f372f7f27f171f8f080f9eebdebedbcebecbddbbebebbcdbdcb' +
    'aebeabbdbdbbccb9ebe9badbdabbcbcbb8ebe8b9dbd9b7ebe7bacbff4cabbbb8dbd8b0ece0c0dbe6a6eb9cbc9a5eabaae5aabb7dbd7ae4a8cac8a4eb' +
    '2eb3ea6dad6ae3a9bab9aaaae2a1eae1a5dad5a7cac7a4da8bab8ad4a9aaa9a6cac6a3dad3a2dad2a1da7bab7ad1a5cac5a8aaa8a99a4cac4a6bab6a' +
    'd0b0cb3cac3a7aaa7a2cac2a5bab5a1ca89a98ac1a4bac0b0bb3bab0b0ab1aab496aaa6a79a97aa0b09b90ab398892ba5aab29a5a1bab1a69a969a49' +
    '4aa78a8793a9a395999592a9a29a1968986977949994939993958985929967976992919991948984957975938983966928982918947974981908a80a' +
    '56965917907a70a738379279728468648558718368638458548268628168618069609358538448258528158059509517348438247427337147417048' +
    '408237327136316037307226125215026206114014104004',
}

/** The two codes for four values, in the same way: their bits as one digit, and the length. */
const quadDigits = ['b6f6d6e67656956535a5c52414448401', 'f4e4d4c4b4a494847464544434241404']

export const pairCodes: Readonly<Record<number, Code>> = Object.fromEntries(
  Object.entries(pairDigits).map(([table, digits]) => [table, codeOf(digits, 3)]),
)

export const quadCodes: readonly Code[] = quadDigits.map((digits) => codeOf(digits, 2))

function codeOf(digits: string, width: number): Code {
  const code = { bits: new Uint16Array(256), lengths: new Uint8Array(256) }
  // A fraction of 1, at which the next code begins.
  let start = 0
  for (let at = 0; at < digits.length; at += width) {
    const value = Number.parseInt(digits.slice(at, at + width - 1), 16)
    const length = Number.parseInt(digits[at + width - 1]!, 36)
    code.bits[value] = start * 2 ** length
    code.lengths[value] = length
    start += 2 ** -length
  }
  return code
}
