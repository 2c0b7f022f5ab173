// Functions of the host for what is kept between runs: sessions, scripts, packages and logs. Each
// has a readable name; only the host checks its arguments.
(native, own) => {
  const { isArray, kindOf, ownKeys } = own;
  // For each group and name: the host's name of the function, and its positional arguments.
  const GROUPS = own.hostFunctions;

  const isOptions = (value) => typeof value === "object" && value !== null && !isArray(value);

  // Names the positional arguments; a last object holds the rest.
  const argsOf = (target, spec, given) => {
    let count = given.length;
    const args = { __proto__: null };
    if (count > 0 && isOptions(given[count - 1])) {
      count--;
      const options = given[count];
      const names = ownKeys(options);
      for (let i = 0; i < names.length; i++) args[names[i]] = options[names[i]];
    }
    for (let i = 0; i < count; i++) {
      if (given[i] === undefined) continue;
      const name = spec[i + 1];
      if (name === undefined) {
        const hint = " takes " + (i === 0 ? "" : i + " in order and ") + "one object of named arguments";
        throw own.invalidArgs("", target, hint + "; it was given " + kindOf(given[i]));
      }
      if (args[name] !== undefined) throw own.invalidArgs("", target, " was given " + name + " twice");
      args[name] = given[i];
    }
    return args;
  };

  const functionOf = (group, name, spec) => {
    const target = { name: group + "." + name };
    const head = '{"own":{"name":"' + spec[0] + '","args":';
    const call = (given) => head + own.argsText(argsOf(target, spec, given), target) + "}}";
    return { [name]: (...given) => own.send(() => call(given), target.name) }[name];
  };

  const groups = ownKeys(GROUPS);
  for (let i = 0; i < groups.length; i++) {
    const functions = GROUPS[groups[i]];
    const names = ownKeys(functions);
    const made = {};
    for (let j = 0; j < names.length; j++) {
      made[names[j]] = functionOf(groups[i], names[j], functions[names[j]]);
    }
    own.define(globalThis, groups[i], made);
  }
}
